-- Changes of viewer counts take their numbers from several clocks, so that they need not wait for each other. The numbers
-- of a clock go up by the number of clocks, so the rest of a division says of which clock a number is. The first numbers
-- are far above the ones that live_clock gave: nodes of an earlier release may still take theirs from there.
CREATE TABLE live_clocks (
    clock_id BIGINT PRIMARY KEY,
    version  BIGINT NOT NULL
);
INSERT INTO live_clocks (clock_id, version)
    WITH RECURSIVE clocks (clock_id) AS (
        SELECT CAST(0 AS BIGINT) UNION ALL SELECT clock_id + 1 FROM clocks WHERE clock_id < 31
    )
    SELECT clocks.clock_id,
        clocks.clock_id + CASE WHEN version = 0 THEN 0 ELSE (version / 32 + 33554432) * 32 END
    FROM clocks JOIN live_clock ON live_clock.clock_id = 1;
