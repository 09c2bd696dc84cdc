-- question: How much does the database hold? What watches the file for news compares two answers.
-- parameters: none
-- columns: circuits, newest (the highest circuit id, 0 without circuits), evaluations, faithfulness, notes
-- units: rows; newest is an id
SELECT (SELECT count(*) FROM circuit) AS circuits,
       (SELECT coalesce(max(circuit_id), 0) FROM circuit) AS newest,
       (SELECT count(*) FROM evaluation) AS evaluations,
       (SELECT count(*) FROM faithfulness) AS faithfulness,
       (SELECT count(*) FROM note) AS notes
