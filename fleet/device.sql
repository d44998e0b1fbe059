-- The 99th percentile of one device, hour by hour, exact: the least latency that 99 % of its I/Os did not exceed.
with asked as (select 'db1' as this_host, 'vda' as this_device),
ranked as (
    select substr(time, 1, 13) as hour, latency_ns,
           row_number() over (partition by substr(time, 1, 13) order by latency_ns) as place,
           count(*) over (partition by substr(time, 1, 13)) as ios
    from io cross join asked
    where layer = 'disk' and host = this_host and device = this_device
)
select hour, ios,
       min(case when place * 100 >= ios * 99 then latency_ns end) as p99_ns,
       max(latency_ns) as longest_ns
from ranked
group by hour, ios
order by hour;
