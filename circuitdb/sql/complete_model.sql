-- question: What did an earlier file not say of this model?
-- parameters:
--   $model_id: INTEGER
--   $n_kv_heads, $d_model: INTEGER, or NULL where this file does not say either
UPDATE model
SET n_kv_heads = coalesce(n_kv_heads, $n_kv_heads), d_model = coalesce(d_model, $d_model)
WHERE model_id = $model_id
  AND ((n_kv_heads IS NULL AND $n_kv_heads::INTEGER IS NOT NULL) OR (d_model IS NULL AND $d_model::INTEGER IS NOT NULL))
