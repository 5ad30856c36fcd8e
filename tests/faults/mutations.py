"""Files of models, broken in many ways."""

import io
import json
import zipfile

import h5py
import numpy as np

CONFIG, WEIGHTS = "config.json", "model.weights.h5"


def cut(data, rng, other):
    """Returns the beginning of a file."""
    return data[: rng.integers(len(data))]


def flipped(data, rng, other):
    """Returns a file with one to eight bits turned."""
    new = np.frombuffer(data, np.uint8).copy()
    places = rng.integers(len(new), size=rng.integers(1, 9))
    new[places] ^= np.uint8(1) << rng.integers(8, size=len(places)).astype(np.uint8)
    return new.tobytes()


def foreign(data, rng, other):
    """Returns a file of another kind."""
    image = b"\x89PNG\r\n\x1a\n" + rng.bytes(200)
    return [b"", b"no model", rng.bytes(1000), image][rng.integers(4)]


def foreign_class(data, rng, other):
    """Returns a model whose config names another class, or one that there is not."""
    members, config = _with_config(data)
    name = ["DBN", "Dense", "Popen", "system", "Nothing", ""][rng.integers(6)]
    module = ["keras.layers", "subprocess", "os", "builtins", None][rng.integers(5)]
    config |= {"class_name": name, "module": module}
    config["registered_name"] = [f"keras_rbm>{name}", name, None][rng.integers(3)]
    return zipped(members | {CONFIG: json.dumps(config).encode()})


def spoilt_config(data, rng, other):
    """Returns a model one of whose arguments is missing, or is of another type."""
    members, config = _with_config(data)
    arguments = config["config"]
    name = ["hidden_units", "visible", "dtype", "rbms", "inference"][rng.integers(5)]
    name = name if name in arguments else list(arguments)[0]
    values = (-1, 10**30, "many", [3], {"a": 1}, 2.5)
    number = rng.integers(len(values) + 1)
    if number == len(values):
        del arguments[name]
    else:
        arguments[name] = values[number]
    return zipped(members | {CONFIG: json.dumps(config).encode()})


def swapped_members(data, rng, other):
    """Returns a model one of whose members is another, or that of another model."""
    members, others = members_of(data), members_of(other)
    names = list(members)
    a, b = rng.choice(len(names), 2, replace=False)
    if rng.integers(2):
        members[names[a]], members[names[b]] = members[names[b]], members[names[a]]
    else:
        name = [CONFIG, WEIGHTS][rng.integers(2)]
        members[name] = others[name]
    return zipped(members)


def lost_member(data, rng, other):
    """Returns a model that lacks its config or its weights."""
    members = members_of(data)
    del members[[CONFIG, WEIGHTS][rng.integers(2)]]
    return zipped(members)


def swapped_datasets(data, rng, other):
    """Returns weights of which two have changed names, or one is lost."""
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as h5:
        names = []
        h5.visititems(
            lambda name, item: names.append(name) if hasattr(item, "dtype") else None
        )
        a, b = (names[i] for i in rng.choice(len(names), 2, replace=False))
        if rng.integers(2):
            h5.move(a, "aside"), h5.move(b, a), h5.move("aside", b)
        else:
            del h5[a]
    return file.getvalue()


def another_model(data, rng, other):
    """Returns the whole file of another model."""
    return other


ANY = (cut, cut, flipped, flipped, foreign)
OF_MODELS = (*ANY, foreign_class, spoilt_config, swapped_members, lost_member)
OF_WEIGHTS = (*ANY, another_model, flipped, swapped_datasets, swapped_datasets)


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _with_config(data):
    members = members_of(data)
    return members, json.loads(members[CONFIG])


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()
