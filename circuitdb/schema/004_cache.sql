-- What a question took long to compute, kept in the file that it was computed from.

CREATE TABLE cache (
    key VARCHAR NOT NULL,
    content BLOB NOT NULL,
    made_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
COMMENT ON TABLE cache IS 'Numbers that took long to compute, so that a question asked again is answered at once. May be emptied at any time.';
COMMENT ON COLUMN cache.key IS 'SHA-256 of the circuits'' digests, the question and the code that computes: other scores, arguments or code are another key.';
COMMENT ON COLUMN cache.content IS 'NumPy arrays, as .npz.';
COMMENT ON COLUMN cache.made_at IS 'When it was computed; the oldest go first.';
