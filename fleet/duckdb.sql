-- DuckDB: the views `io` and `seconds` over recordings/host=H/day=D/.
--   cat fleet/duckdb.sql fleet/hosts.sql | duckdb
create or replace view io as
select host, day, strftime(make_timestamp(at_ns // 1000), '%Y-%m-%d %H:%M:%S') as time,
       at_ns, latency_ns, layer, device, op, sector, bytes, depth, outcome,
       coalesce(client, process, 'unknown') as who, cgroup, rule, queue_ns, hold_ns
from read_parquet('recordings/host=*/day=*/ios/*.parquet', hive_partitioning = true, hive_types_autocast = false)
where outcome <> 'in flight';

create or replace view seconds as
select host, day, strftime(make_timestamp(second * 1000000), '%Y-%m-%d %H:%M:%S') as time,
       second, layer, device, op, le_ns, n, sum_ns, bytes, max_ns, errors
from read_parquet('recordings/host=*/day=*/seconds/*.parquet', hive_partitioning = true, hive_types_autocast = false);
