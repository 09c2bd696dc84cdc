-- question: Which of the arriving sources of evaluations are not there yet?
-- parameters: none; the arriving rows are registered as `arriving`
INSERT INTO evaluation_source BY NAME
SELECT a.*
FROM arriving AS a
WHERE lower(a.source) NOT IN (SELECT lower(source) FROM evaluation_source)
