-- Pairs whose prompts have unequally many tokens.

ALTER TABLE circuit ADD COLUMN n_padded INTEGER;
COMMENT ON COLUMN circuit.n_padded IS 'Pairs whose prompts have unequally many tokens; NULL where that is not known, and before schema 11, when there were none.';
COMMENT ON COLUMN circuit.padding IS 'left where prompts of a pair may have unequally many tokens, the shorter one standing as if padded there; none where all have equally many.';
COMMENT ON COLUMN example.corrupted IS 'Corrupted prompt; NULL if none was found.';
COMMENT ON COLUMN example.corrupted_ids IS 'Token ids of the corrupted run; NULL if it was skipped. As many as clean_ids, unless the circuit is padded.';
