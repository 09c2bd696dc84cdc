-- question: Which of the arriving notes on no circuit are not there yet?
-- parameters: none; the arriving rows are registered as `arriving`
INSERT INTO note BY NAME
SELECT a.*
FROM arriving AS a
ANTI JOIN note AS n
  ON n.circuit_id IS NULL AND n.text = a.text AND n.node IS NOT DISTINCT FROM a.node
 AND n.edge IS NOT DISTINCT FROM a.edge
