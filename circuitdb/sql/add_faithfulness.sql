-- question: Which of the arriving runs of circuits are not there yet?
-- parameters: none; the arriving rows are registered as `arriving`
INSERT INTO faithfulness BY NAME
SELECT a.*
FROM arriving AS a
ANTI JOIN faithfulness AS f
  ON f.circuit_id = a.circuit_id AND f.data_circuit_id = a.data_circuit_id AND f.selection = a.selection
 AND f.ablation = a.ablation AND f.metric = a.metric AND f.share IS NOT DISTINCT FROM a.share
 AND f.n_edges = a.n_edges
