-- Spark: the views `io` and `seconds` over recordings/host=H/day=D/.
--   spark-sql -i fleet/spark.sql -f fleet/hosts.sql
set spark.sql.session.timeZone = UTC;
set spark.sql.sources.partitionColumnTypeInference.enabled = false;

create or replace temporary view io_files using parquet
options (path 'recordings/host=*/day=*/ios', basePath 'recordings', pathGlobFilter '*.parquet');

create or replace temporary view seconds_files using parquet
options (path 'recordings/host=*/day=*/seconds', basePath 'recordings', pathGlobFilter '*.parquet');

create or replace temporary view io as
select host, day, date_format(timestamp_seconds(at_ns div 1000000000), 'yyyy-MM-dd HH:mm:ss') as time,
       at_ns, latency_ns, layer, device, op, sector, bytes, depth, outcome,
       coalesce(client, process, 'unknown') as who, cgroup, rule, queue_ns, hold_ns
from io_files
where outcome <> 'in flight';

create or replace temporary view seconds as
select host, day, date_format(timestamp_seconds(second), 'yyyy-MM-dd HH:mm:ss') as time,
       second, layer, device, op, le_ns, n, sum_ns, bytes, max_ns, errors
from seconds_files;
