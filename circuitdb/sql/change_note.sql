-- question: What is the number of this note, now that it says something else?
-- parameters:
--   $note: BIGINT, its number
--   $words: VARCHAR, what it says now
UPDATE note SET text = $words, changed_at = now() WHERE note_id = $note::BIGINT RETURNING note_id
