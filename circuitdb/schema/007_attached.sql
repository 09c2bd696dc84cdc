-- Evaluations that stay in their files. What these hold is read whenever it is asked for, so only where they are is kept, how
-- they are to be read, and what they were like when they were attached.

CREATE TABLE attached_file (
    source VARCHAR NOT NULL,
    file VARCHAR NOT NULL,
    n_bytes BIGINT NOT NULL,
    modified_ns BIGINT NOT NULL,
    digest VARCHAR NOT NULL,
    attached_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    model_column VARCHAR,
    subtask_column VARCHAR,
    model_name VARCHAR,
    subtask_name VARCHAR,
    table_name VARCHAR
);
COMMENT ON TABLE attached_file IS 'Files of evaluations that are read where they lie, by circuitdb alone; one row a file.';
COMMENT ON COLUMN attached_file.source IS 'Name of the evaluations; the table of the files is the view evals.NAME.';
COMMENT ON COLUMN attached_file.file IS 'File, with its full path.';
COMMENT ON COLUMN attached_file.n_bytes IS 'Its size when it was attached.';
COMMENT ON COLUMN attached_file.modified_ns IS 'When it was last changed before that, in nanoseconds since 1970.';
COMMENT ON COLUMN attached_file.digest IS 'SHA-256 of its bytes when it was attached.';
COMMENT ON COLUMN attached_file.attached_at IS 'When it was attached.';
COMMENT ON COLUMN attached_file.model_column IS 'Column that names the model; NULL where it is known by its name.';
COMMENT ON COLUMN attached_file.subtask_column IS 'Column that names the subtask; NULL where it is known by its name.';
COMMENT ON COLUMN attached_file.model_name IS 'Model of all rows; NULL where a column has it.';
COMMENT ON COLUMN attached_file.subtask_name IS 'Subtask or task of all rows; NULL where a column has it.';
COMMENT ON COLUMN attached_file.table_name IS 'Table of a DuckDB or SQLite file; NULL for its only one.';
COMMENT ON COLUMN evaluation_source.n_rows IS 'Values, when they were added.';
COMMENT ON TABLE imported_evaluation IS 'Evaluations from files, in the names of the files; evaluations has them matched. Those of attached files are there when circuitdb asks.';
