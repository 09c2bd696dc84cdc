-- question: What tells the models apart?
-- parameters: none
-- columns: model_id, name, revision, weights_digest (of the weights as loaded; NULL for imported circuits)
-- units: none
SELECT model_id, name, revision, weights_digest
FROM model
ORDER BY model_id
