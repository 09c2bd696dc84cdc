-- question: What is the similarity of two circuits, and its ceiling, of those that were computed beforehand?
-- parameters: none; a and b are the macro's own, and _similarities is a table of the connection
-- columns: similarity, n_edges, ceiling, corrected
CREATE TEMP MACRO similarity(a, b) AS TABLE
WITH _asked AS (SELECT a AS _a, b AS _b)
SELECT max(s.similarity) AS similarity, coalesce(max(s.n_edges), 0) AS n_edges, max(s.ceiling) AS ceiling,
       max(CASE WHEN s.a_id <> s.b_id THEN s.corrected WHEN s.corrected IS NOT NULL THEN 1.0 END) AS corrected
FROM _asked AS q
LEFT JOIN _similarities AS s ON s.a_id = q._a AND s.b_id = q._b
