-- Which hosts had the most slow time? The slow time of an I/O is what it took beyond `slow_ns`.
with asked as (select 10000000 as slow_ns)
select host,
       count(*) as ios,
       sum(case when latency_ns > slow_ns then 1 else 0 end) as slow_ios,
       sum(case when latency_ns > slow_ns then latency_ns - slow_ns else 0 end) as slow_time_ns,
       max(latency_ns) as longest_ns
from io cross join asked
where layer = 'disk'
group by host
order by slow_time_ns desc, host;
