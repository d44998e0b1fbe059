-- Compares latencies before and after a date, such as that of an upgrade, for each host and operation: the host and
-- operation whose 99th percentile rose most comes first.
with asked as (select '2026-11-24 00:00:00' as the_date),
ranked as (
    select host, op, latency_ns, case when time < the_date then 'before' else 'after' end as side,
           row_number() over (
               partition by host, op, case when time < the_date then 'before' else 'after' end order by latency_ns
           ) as place,
           count(*) over (partition by host, op, case when time < the_date then 'before' else 'after' end) as ios
    from io cross join asked
    where layer = 'disk'
),
sides as (
    select host, op,
           sum(case when side = 'before' then 1 else 0 end) as ios_before,
           sum(case when side = 'after' then 1 else 0 end) as ios_after,
           min(case when side = 'before' and place * 2 >= ios then latency_ns end) as p50_before_ns,
           min(case when side = 'after' and place * 2 >= ios then latency_ns end) as p50_after_ns,
           min(case when side = 'before' and place * 100 >= ios * 99 then latency_ns end) as p99_before_ns,
           min(case when side = 'after' and place * 100 >= ios * 99 then latency_ns end) as p99_after_ns
    from ranked
    group by host, op
)
select host, op, ios_before, ios_after, p50_before_ns, p50_after_ns, p99_before_ns, p99_after_ns
from sides
where ios_before > 0 and ios_after > 0
order by p99_after_ns - p99_before_ns desc, host, op;
