-- question: Which rows of evaluations are in the database file itself?
-- parameters: none
-- columns: those of imported_evaluation
FROM main.imported_evaluation
