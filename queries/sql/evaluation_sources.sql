-- question: Which evaluations were added from files?
-- parameters: none
-- columns: source (their name), format, files, n_rows, added_at
-- units: counts
SELECT source, format, files, n_rows, added_at
FROM evaluation_source
ORDER BY source
