-- question: How wide are the models?
-- parameters: none
-- columns: model_id, d_model (NULL where an imported file does not say)
-- units: numbers of the residual stream
SELECT model_id, d_model
FROM model
ORDER BY model_id
