-- Percentiles of the whole fleet by adding up the buckets of all hosts. The question reads `seconds`, which is small,
-- and has also those I/Os that --keep has deleted. Each percentile is the end of its bucket: at most an eighth too
-- high.
with buckets as (
    select op, le_ns, sum(n) as ios
    from seconds
    where layer = 'disk' and le_ns is not null
    group by op, le_ns
),
added as (
    select op, le_ns,
           sum(ios) over (partition by op order by le_ns) as up_to,
           sum(ios) over (partition by op) as all_ios
    from buckets
)
select op, all_ios,
       min(case when up_to * 2 >= all_ios then le_ns end) as p50_ns,
       min(case when up_to * 100 >= all_ios * 99 then le_ns end) as p99_ns,
       min(case when up_to * 1000 >= all_ios * 999 then le_ns end) as p999_ns
from added
group by op, all_ios
order by op;
