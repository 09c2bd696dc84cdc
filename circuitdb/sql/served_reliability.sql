-- question: What is the reliability of a circuit, of those that were computed beforehand?
-- parameters: none; circuit is the macro's own, and _reliabilities is a table of the connection
-- columns: fold_correlation, reliability, n_folds
CREATE TEMP MACRO reliability(circuit) AS TABLE
WITH _asked AS (SELECT circuit AS _circuit)
SELECT r.fold_correlation, r.reliability, r.n_folds
FROM _asked AS q
JOIN _reliabilities AS r ON r.circuit_id = q._circuit
