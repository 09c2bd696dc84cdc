-- Notes have a number to change and delete them by.

CREATE SEQUENCE note_numbers;
ALTER TABLE note ADD COLUMN note_id INTEGER DEFAULT nextval('note_numbers');
ALTER TABLE note ADD COLUMN changed_at TIMESTAMPTZ;
COMMENT ON COLUMN note.note_id IS 'Number of the note, never given twice.';
COMMENT ON COLUMN note.changed_at IS 'When the words were last changed; NULL if never.';
