# %% [markdown]
# # Draw a synthetic table
#
# `TableModel` learns a data frame as it is, with words, whole numbers and gaps, and
# draws new rows. A report compares them with real ones. Here boosted trees hardly tell
# which are which, and nothing was copied. Each line of the report is read below, for
# this table and for two bad ones.

# %%
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes

import keras_rbm as kr
from keras_rbm.sklearn import TableModel

study = load_diabetes(as_frame=True, scaled=False)
names = {"age": "age", "bmi": "bmi", "bp": "pressure", "s1": "cholesterol"}
names |= {"s3": "hdl", "s5": "triglycerides", "s6": "glucose"}
frame = study.data[[*names]].rename(columns=names)
frame.insert(0, "sex", study.data["sex"].map({1.0: "woman", 2.0: "man"}))
frame["progression"] = study.target
half = np.random.default_rng(0).random(len(frame)) < 0.5
frame.loc[half & (frame["age"] < 40), "glucose"] = np.nan
frame = frame.convert_dtypes()
train = frame.sample(242, random_state=1)
test = frame.drop(train.index)
train.head().round(1)

# %% [markdown]
# These are 442 patients with diabetes. The glucose of half of those below 40 was
# removed, so that the table has gaps. The model learns from 242 rows. The report needs
# others that it has not seen; its trees use them if there are at least 200.
#
# ## Draw a table

# %%
model = TableModel(random_state=0).fit(train)
synthetic = model.sample(len(train))
synthetic.head().round(1)

# %% [markdown]
# Columns and types are those of the real table: whole numbers are whole. Gaps are drawn
# with the rest, and are more frequent among the young here, too, if not as clearly.

# %%
for name, table in {"real": train, "synthetic": synthetic}.items():
    young, gone = table["age"] < 40, table["glucose"].isna()
    print(f"{name:9}  glucose gone below 40: {gone[young].mean():.0%}, ", end="")
    print(f"others: {gone[~young].mean():.0%}")

# %% [markdown]
# ## Draw under a condition
#
# Each row that is drawn meets all conditions, and its other cells go with them. Few
# real rows meet these three; the model draws as many as one asks for.

# %%
given = {"sex": "woman", "age": (60, None), "bmi": (30, None)}
drawn = model.sample(500, given=given)
real = train.query("sex == 'woman' and age >= 60 and bmi >= 30")
columns = ["pressure", "cholesterol", "hdl", "glucose", "progression"]
tables = {"all": train, "real that meet them": real, "drawn": drawn}
means = pd.DataFrame({name: table[columns].mean() for name, table in tables.items()})
means.T.astype(float).round(1).assign(rows=[len(table) for table in tables.values()])

# %% [markdown]
# ## Whether to trust it

# %%
report = kr.tables.table_report(train, synthetic, test=test, target="progression")
print(report)

# %% [markdown]
# Each line is a value, its standard error, and what it means:
#
# - *column shapes*: is each column distributed as the real one? It is, as well as other
#   real rows are, whose score is in the line.
# - *pair trends*: do columns go together as they do? The line has the pairs that are
#   related in the real table, the next one all pairs. Both are what other real rows
#   reach, or close to it.
# - *classifier*: boosted trees try to tell drawn rows from real ones that nobody
#   learned from. 0.5 is guessing, 1 is always right. Here it is nearer to 0.5.
# - *target*: what can be learned from them? Trees that learn `progression` from drawn
#   rows predict it somewhat worse in real ones than trees that learn from as many real
#   rows. The line says whether that is clear, or could be chance.
# - *closest record*, *copies*, *neighbors*: is it too good? Drawn rows are as far from
#   the real ones as other real rows are, and none equals one. About half of all nearest
#   neighbors are of the own kind; of copies none would be.
# - *privacy loss*: are drawn rows nearer to the rows that were learned than to other
#   real rows? They are if it is above 0 by more than three errors.

# %%
kr.plots.table_report(report)

# %% [markdown]
# *Left*: the shape of each column. *Middle*: the trend of each pair, drawn rows below
# the diagonal, other real rows above. *Right*: the lines of the report. A dot should
# lie on its gray line, which is what real rows have.
#
# ## Two bad tables
#
# One has the real columns, each in random order: all single cells are right, and
# nothing goes together. The other has the real rows themselves.

# %%
shuffled = train.copy()
for seed, name in enumerate(train):
    shuffled[name] = train[name].sample(frac=1.0, random_state=seed).array
bad = {"shuffled": shuffled, "copies": train}
reports = {"model": report} | {
    name: kr.tables.table_report(train, table, test=test, target="progression")
    for name, table in bad.items()
}
values = {name: own.frame()["value"] for name, own in reports.items()}
pd.DataFrame(values | {"other real rows": report.frame()["real"]}).round(2)

# %% [markdown]
# - Of the *shuffled* columns the shapes are perfect, and the trends the worst. Trees
#   tell the rows, which are farther from the real ones than real rows are, and nothing
#   can be learned from them: R² is below 0.
# - *Copies* are perfect in all that is to be alike, and trees cannot tell them. The
#   last lines say what they are: all are copies, at a distance of 0, and the privacy
#   loss is far above 0.
#
# So no line is enough. A table is like the real one if the first five lines are near
# those of real rows, and new if the last four are. Its single cells are real ones, so
# do not publish columns whose values are secret: see
# [the guide](../../guides/tables/).

# %%
kr.plots.table_report(reports["shuffled"])

# %% [markdown]
# **Next:** [tables of any columns](../../guides/tables/),
# [how good other synthesizers are](../../results/tables/),
# [fill gaps in a table](../mixed_table/).
