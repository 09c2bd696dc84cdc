-- question: What is the similarity of two circuits, of those that were computed beforehand?
-- parameters: none; a and b are the macro's own, and _similarities is a table of the connection
-- columns: similarity, n_edges
CREATE TEMP MACRO similarity(a, b) AS TABLE
WITH _asked AS (SELECT a AS _a, b AS _b)
SELECT max(s.similarity) AS similarity, coalesce(max(s.n_edges), 0) AS n_edges
FROM _asked AS q
LEFT JOIN _similarities AS s ON s.a_id = q._a AND s.b_id = q._b
