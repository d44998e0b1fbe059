-- ClickHouse: the views `io` and `seconds` over recordings/host=H/day=D/.
--   cat fleet/clickhouse.sql fleet/hosts.sql | clickhouse local --format PrettyCompact
-- The names of the host and the day are cut out of the path, so that no engine takes a host named 007 for a number.
create or replace view io as
select extract(_path, '/host=([^/]+)/') as host, extract(_path, '/day=([^/]+)/') as day,
       formatDateTime(fromUnixTimestamp64Nano(at_ns), '%Y-%m-%d %H:%i:%S', 'UTC') as time,
       at_ns, latency_ns, layer, device, op, sector, bytes, depth, outcome,
       coalesce(client, process, 'unknown') as who, cgroup, rule, queue_ns, hold_ns
from file('recordings/host=*/day=*/ios/*.parquet', Parquet)
where outcome <> 'in flight';

create or replace view seconds as
select extract(_path, '/host=([^/]+)/') as host, extract(_path, '/day=([^/]+)/') as day,
       formatDateTime(fromUnixTimestamp64Nano(second * 1000000000), '%Y-%m-%d %H:%i:%S', 'UTC') as time,
       second, layer, device, op, le_ns, n, sum_ns, bytes, max_ns, errors
from file('recordings/host=*/day=*/seconds/*.parquet', Parquet);
