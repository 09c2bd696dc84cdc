-- question: Which stored runs of circuits do the arriving ones take the place of?
-- parameters: none; the arriving rows are registered as `arriving`
DELETE FROM faithfulness AS old
USING arriving AS new
WHERE old.circuit_id = new.circuit_id
  AND old.data_circuit_id = new.data_circuit_id
  AND old.share = new.share
  AND old.selection = new.selection
  AND old.ablation = new.ablation
  AND old.metric = new.metric
