-- question: Which metrics do the evaluations have?
-- parameters: none
-- columns: name (source.metric), n_values
-- units: counts
SELECT source || '.' || metric AS name, count(value) AS n_values
FROM evaluations
GROUP BY ALL
ORDER BY name
