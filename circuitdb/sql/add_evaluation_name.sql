-- question: Which of the arriving rows are of evaluations that are not there yet?
-- parameters: none; the arriving rows are registered as `arriving`
INSERT INTO evaluation_name BY NAME
SELECT a.*
FROM arriving AS a
WHERE lower(a.source) NOT IN (SELECT lower(source) FROM evaluation_source)
