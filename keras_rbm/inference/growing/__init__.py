"""What a growing model needs: search, judgement and refitting of hidden units."""
