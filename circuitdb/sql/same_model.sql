-- question: Which stored model is this one?
-- parameters:
--   $graph_id: INTEGER, its graph
--   $name: VARCHAR; $revision, $weights_digest: VARCHAR or NULL
--   $n_kv_heads, $d_model: INTEGER, or NULL where an imported file does not say; of models without a digest of their
--     weights they must not contradict each other
-- columns: model_id
SELECT model_id
FROM model
WHERE graph_id = $graph_id
  AND name = $name
  AND revision IS NOT DISTINCT FROM $revision
  AND weights_digest IS NOT DISTINCT FROM $weights_digest
  AND (weights_digest IS NOT NULL
       OR ((n_kv_heads = $n_kv_heads OR n_kv_heads IS NULL OR $n_kv_heads::INTEGER IS NULL)
           AND (d_model = $d_model OR d_model IS NULL OR $d_model::INTEGER IS NULL)))
ORDER BY model_id
LIMIT 1
