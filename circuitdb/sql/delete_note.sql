-- question: What was the number of this note, now that it is gone?
-- parameters: $note: BIGINT, its number
DELETE FROM note WHERE note_id = $note::BIGINT RETURNING note_id
