-- The views that questions rest on, over the tables of the schema `stored`.

-- Each text once, also where two compactions stored it. That it is grouped lets DuckDB leave out the
-- joins below where no text is asked for.
CREATE VIEW texts AS SELECT text_id, any_value(text) AS text FROM stored.texts GROUP BY text_id;

-- The same step recorded twice (two processes, one killed late) counts once: the earlier end. `over`
-- replaces it by all rows where none is superseded: a million ids need not be read then.
CREATE VIEW stored.steps AS
    FROM stored.iterations ANTI JOIN stored.superseded USING (iteration_id);

-- What this ledger's judge found; rows of other judges are in `iterations` alone.
CREATE VIEW stored.judged AS FROM stored.steps WHERE execution <> 'imported';

CREATE VIEW iterations AS
    SELECT i.* REPLACE (coalesce(i.source, t.text) AS source)
    FROM stored.steps i LEFT JOIN texts t ON t.text_id = i.source_id;

-- The latest confirming run of each kernel: a later look replaces an earlier one, for better or
-- worse. So a kernel that a re-qualification refuses gives its place to the next one.
CREATE VIEW stored.confirmed AS
    SELECT * FROM stored.steps
    WHERE mode = 'confirm' AND execution = 'hardware' AND candidate_id IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY operator_hash, device, contract, candidate_id
        ORDER BY ended_at DESC NULLS LAST, iteration_id
    ) = 1;

CREATE VIEW confirmed AS
    SELECT c.* REPLACE (coalesce(c.source, t.text) AS source)
    FROM stored.confirmed c LEFT JOIN texts t ON t.text_id = c.source_id;

-- `stored.confirmed` and `stored.best` lack their texts, as DuckDB does not leave the join out of a
-- larger one. Questions ask these and `stored.judged`.
CREATE VIEW stored.best AS
    SELECT * FROM stored.confirmed
    WHERE verdict IN ('CORRECT', 'FASTER')
    QUALIFY row_number() OVER (
        PARTITION BY operator_hash, device, contract
        ORDER BY speedup_low DESC NULLS LAST, ended_at DESC NULLS LAST, iteration_id
    ) = 1;

CREATE VIEW best AS
    SELECT b.* REPLACE (coalesce(b.source, t.text) AS source)
    FROM stored.best b LEFT JOIN texts t ON t.text_id = b.source_id;

CREATE VIEW timings AS
    SELECT * FROM stored.timings SEMI JOIN stored.steps USING (iteration_id);

-- In one join, as DuckDB leaves out no more than one.
CREATE VIEW stored.found AS
    SELECT c.call_id, any_value(i.iteration_id) AS iteration_id, any_value(prompts.text) AS prompt,
        any_value(replies.text) AS reply, any_value(thoughts.text) AS reasoning
    FROM stored.llm_calls c
    LEFT JOIN stored.steps i USING (run_id, operator_hash, device, contract, lineage, step)
    LEFT JOIN texts prompts ON prompts.text_id = c.prompt_id
    LEFT JOIN texts replies ON replies.text_id = c.reply_id
    LEFT JOIN texts thoughts ON thoughts.text_id = c.reasoning_id
    GROUP BY c.call_id;

CREATE VIEW llm_calls AS
    SELECT c.* REPLACE (
        f.iteration_id AS iteration_id,
        coalesce(c.prompt, f.prompt) AS prompt,
        coalesce(c.reply, f.reply) AS reply,
        coalesce(c.reasoning, f.reasoning) AS reasoning)
    FROM stored.llm_calls c LEFT JOIN stored.found f USING (call_id);

-- Rows before version 3 have no interval of the gain: it follows from the shapes, whose half widths
-- (in the logarithm) add in quadrature.
CREATE VIEW older_gains AS
    SELECT iteration_id,
        sqrt(sum(ln(parent_ratio / parent_low) ^ 2)) / count(*) AS below,
        sqrt(sum(ln(parent_high / parent_ratio) ^ 2)) / count(*) AS above
    FROM stored.timings
    WHERE schema_version < 3 AND parent_ratio > 0
    GROUP BY iteration_id
    HAVING bool_and(parent_low > 0 AND parent_high > 0);

-- The estimand of transfer: a step that added exactly one technique to its parent, both timed as a
-- pair on one lease. A step that adds several says nothing about either and is left out.
CREATE VIEW additions AS
    WITH added AS (
        SELECT *, techniques_added[1] AS technique
        FROM stored.steps
        WHERE len(techniques_added) = 1 AND len(parent_ids) > 0 AND gain_over_parent > 0
            AND execution = 'hardware' AND mode <> 'confirm' AND verdict IN ('CORRECT', 'FASTER')
    )
    SELECT iteration_id, run_id, operator, operator_hash, family, device, vendor, contract,
        lineage, step, candidate_id, technique, gain_over_parent AS gain,
        gain_low AS low, gain_high AS high
    FROM added WHERE gain_low IS NOT NULL
    UNION ALL
    SELECT iteration_id, run_id, operator, operator_hash, family, device, vendor, contract,
        lineage, step, candidate_id, technique, gain_over_parent,
        gain_over_parent * exp(-below), gain_over_parent * exp(above)
    FROM added JOIN older_gains USING (iteration_id)
    WHERE gain_low IS NULL AND schema_version < 3;

-- One row a technique, operator and device, whatever the number of steps: operators, not steps, are
-- the independent units of every interval and test.
CREATE VIEW effects AS
    SELECT technique, contract, device, any_value(vendor) AS vendor,
        operator_hash, any_value(operator) AS operator, any_value(family) AS family,
        count(*) AS steps,
        exp(avg(ln(gain))) AS gain,
        exp(avg(ln(gain)) - sqrt(sum(ln(gain / low) ^ 2)) / count(*)) AS low,
        exp(avg(ln(gain)) + sqrt(sum(ln(high / gain) ^ 2)) / count(*)) AS high
    FROM additions
    GROUP BY technique, contract, device, operator_hash;

-- Bounds of a share's 95 % interval (Wilson); NULL of nothing.
CREATE MACRO wilson(k, n, side) AS
    CASE WHEN n > 0 THEN greatest(0, least(1,
        (k + 1.9207 + side * 1.96 * sqrt(k * (n - k) / n + 0.9604)) / (n + 3.8415)))
    END;

-- P(at most k heads of n fair coins).
CREATE MACRO coins(k, n) AS
    coalesce(list_sum([
        exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) - n * ln(2)) for i in range(k + 1)
    ]), 0);

-- Two-sided sign test: how likely so uneven a split would be by chance.
CREATE MACRO sign_test(up, down) AS least(1, 2 * coins(least(up, down), up + down));

-- Bounds of a median's interval of at least 95 %: the k-th value from either end, whatever the
-- distribution; NULL below six values, where there is none.
CREATE MACRO median_rank(n) AS CASE WHEN n >= 6 THEN floor((n + 1 - 1.96 * sqrt(n)) / 2)::BIGINT END;
CREATE MACRO median_low(gains) AS list_sort(gains)[median_rank(len(gains))];
CREATE MACRO median_high(gains) AS list_sort(gains)[len(gains) + 1 - median_rank(len(gains))];
