-- What the attribution engine stores: token ids of the examples, scores of single examples, and circuits that were run.

ALTER TABLE circuit ADD COLUMN contrast VARCHAR;
COMMENT ON COLUMN circuit.contrast IS 'What a difference compares the answer with: corrupted (the corrupted answer), or a JSON list of answers; NULL where the metric compares nothing.';
COMMENT ON COLUMN circuit.metric IS 'Metric that was attributed: kl (from clean to run, in nats), logit-difference, prob-difference, nll, kl-published or a user''s own.';
COMMENT ON COLUMN circuit.positions IS 'Scored positions: last (of the prompt), answer (those that predict the answer''s tokens) or all (those that predict any token after the prompt).';
COMMENT ON COLUMN circuit.grid IS 'Integration grid, of k = 1..m: right is k/m, left (k-1)/m, midpoint (k-1/2)/m, gauss-legendre that quadrature''s nodes.';
COMMENT ON COLUMN circuit.ablation IS 'What an edge is replaced by: patching (the corrupted run), zero, mean (over prompts and positions) or mean-positional.';
COMMENT ON COLUMN circuit.metric_clean IS 'Mean metric of the whole model.';
COMMENT ON COLUMN circuit.metric_corrupted IS 'Mean metric with every edge ablated; under patching that of the corrupted runs.';
COMMENT ON COLUMN circuit.dtype IS 'Type the model computed in; tf32 is float32 whose matrix products were rounded.';
COMMENT ON COLUMN edge_score.score IS 'Change of the mean metric when the edge is ablated (to first order, unless the method is exact); NULL where it was not finite.';

ALTER TABLE example ADD COLUMN clean_ids INTEGER[];
ALTER TABLE example ADD COLUMN corrupted_ids INTEGER[];
ALTER TABLE example ADD COLUMN labels INTEGER[][];
COMMENT ON COLUMN example.clean_ids IS 'Token ids of the clean run: the prompt, and what of the answer is read while the rest of it is scored.';
COMMENT ON COLUMN example.corrupted_ids IS 'Token ids of the corrupted run; NULL if it was skipped.';
COMMENT ON COLUMN example.labels IS 'For each scored position, of which there are as many as lists, the token ids of the answer and of what it is compared with; -1 is no token.';

CREATE TABLE example_score (
    circuit_id INTEGER NOT NULL,
    position INTEGER NOT NULL,
    edge_id INTEGER NOT NULL,
    score FLOAT
);
COMMENT ON TABLE example_score IS 'The scores over single examples, in (circuit_id, position, edge_id) order; only of circuits ingested with --by-example.';
COMMENT ON COLUMN example_score.circuit_id IS 'Circuit.';
COMMENT ON COLUMN example_score.position IS 'Place of the example, as in example.';
COMMENT ON COLUMN example_score.edge_id IS 'Edge of the circuit''s graph.';
COMMENT ON COLUMN example_score.score IS 'Change of the metric on the example; NULL where it was not finite.';

ALTER TABLE faithfulness ADD COLUMN share DOUBLE;
ALTER TABLE faithfulness ADD COLUMN n_tied INTEGER;
ALTER TABLE faithfulness ADD COLUMN n_examples INTEGER;
ALTER TABLE faithfulness ADD COLUMN accuracy DOUBLE;
COMMENT ON COLUMN faithfulness.faithfulness IS '(value - corrupted) / (clean - corrupted); NULL where that gap is no larger than rounding.';
COMMENT ON COLUMN faithfulness.share IS 'Share of all edges that was asked for; n_edges is its whole part.';
COMMENT ON COLUMN faithfulness.n_tied IS 'Edges left out whose score ties with the last one kept; ties are broken by edge id.';
COMMENT ON COLUMN faithfulness.n_examples IS 'Examples it was run on.';
COMMENT ON COLUMN faithfulness.accuracy IS 'Share of right answers that the circuit alone generates, greedily; NULL where it was not asked.';
COMMENT ON COLUMN faithfulness.selection IS 'How the edges were chosen: top-absolute (largest score of either sign) or top-signed (those whose ablation makes the metric worse by most).';

CREATE OR REPLACE VIEW circuits AS
SELECT c.circuit_id, m.name AS model, m.revision, t.name AS task, s.name AS subtask, s.parameters,
       c.method, c.steps, c.grid, c.metric, c.positions, c.contrast, c.ablation, c.prompt_style, c.shots, c.seed,
       c.n_examples, c.n_skipped, c.n_folds,
       e.value AS accuracy, c.metric_clean, c.metric_corrupted, c.wall_time_s, c.n_edges, c.n_nonfinite,
       c.origin, c.started_at, c.dtype, c.device, c.score_digest, c.graph_id, c.model_id, c.subtask_id
FROM circuit AS c
JOIN model AS m USING (model_id)
JOIN subtask AS s USING (subtask_id)
JOIN task AS t USING (task_id)
LEFT JOIN evaluation AS e ON e.circuit_id = c.circuit_id AND e.metric = 'accuracy' AND e.filter = 'greedy' AND e.source = 'circuitdb';
COMMENT ON VIEW circuits IS 'Everything a person wants to see of a circuit, one row each.';
COMMENT ON COLUMN circuits.circuit_id IS 'Circuit.';
COMMENT ON COLUMN circuits.model IS 'Name of the model.';
COMMENT ON COLUMN circuits.revision IS 'Hub revision or training step of the model; NULL where none was named.';
COMMENT ON COLUMN circuits.task IS 'Name of the task.';
COMMENT ON COLUMN circuits.subtask IS 'Name of the subtask.';
COMMENT ON COLUMN circuits.parameters IS 'What fixes the subtask, for example {"digits_a": 2, "digits_b": 3}.';
COMMENT ON COLUMN circuits.method IS 'Attribution method, for example eap-ig.';
COMMENT ON COLUMN circuits.steps IS 'Integration steps; NULL where the method has none.';
COMMENT ON COLUMN circuits.grid IS 'Integration grid; NULL where the method has none.';
COMMENT ON COLUMN circuits.metric IS 'Metric that was attributed.';
COMMENT ON COLUMN circuits.positions IS 'Scored positions: last, answer or all.';
COMMENT ON COLUMN circuits.contrast IS 'What a difference compares the answer with; NULL where the metric compares nothing.';
COMMENT ON COLUMN circuits.ablation IS 'What an edge is replaced by: patching, zero, mean or mean-positional.';
COMMENT ON COLUMN circuits.prompt_style IS 'zero-shot or few-shot.';
COMMENT ON COLUMN circuits.shots IS 'Solved questions before the scored one.';
COMMENT ON COLUMN circuits.seed IS 'Seed of the examples.';
COMMENT ON COLUMN circuits.n_examples IS 'Pairs that were scored.';
COMMENT ON COLUMN circuits.n_skipped IS 'Questions left out; the reason is in example.';
COMMENT ON COLUMN circuits.n_folds IS 'Parts of the examples, with no question in common, whose scores are kept apart in fold_score.';
COMMENT ON COLUMN circuits.accuracy IS 'The model''s share of right answers on the circuit''s questions; NULL where it was not asked.';
COMMENT ON COLUMN circuits.metric_clean IS 'Mean metric of the whole model.';
COMMENT ON COLUMN circuits.metric_corrupted IS 'Mean metric with every edge ablated.';
COMMENT ON COLUMN circuits.wall_time_s IS 'Seconds that scoring took; reading the answers is not in it.';
COMMENT ON COLUMN circuits.n_edges IS 'Edges of the circuit.';
COMMENT ON COLUMN circuits.n_nonfinite IS 'Scores that were not finite and are stored as NULL.';
COMMENT ON COLUMN circuits.origin IS 'ingest, or the file format it was imported from.';
COMMENT ON COLUMN circuits.started_at IS 'When scoring began.';
COMMENT ON COLUMN circuits.dtype IS 'Type the model computed in.';
COMMENT ON COLUMN circuits.device IS 'Device the model computed on.';
COMMENT ON COLUMN circuits.score_digest IS 'SHA-256 of the scores: equal digests are equal circuits.';
COMMENT ON COLUMN circuits.graph_id IS 'Graph shape.';
COMMENT ON COLUMN circuits.model_id IS 'Model.';
COMMENT ON COLUMN circuits.subtask_id IS 'Subtask.';
