-- question: What was run of this circuit's scored examples?
-- parameters:
--   $circuit: INTEGER, its id
-- columns: clean_ids, corrupted_ids, labels (token ids), n_tokens (of the prompt alone), answer
SELECT clean_ids, corrupted_ids, labels, n_tokens, answer
FROM example
WHERE circuit_id = $circuit AND used
ORDER BY position
