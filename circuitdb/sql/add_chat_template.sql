-- question: Which of the arriving chat templates are not there yet?
-- parameters: none; the arriving rows are registered as `arriving`
INSERT INTO chat_template BY NAME
SELECT a.*
FROM arriving AS a
ANTI JOIN chat_template AS c USING (digest)
