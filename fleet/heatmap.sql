-- A heat map: a row for each minute, a column for each band of latency, and in it the number of I/Os.
select substr(time, 1, 16) as minute,
       sum(case when latency_ns < 100000 then 1 else 0 end) as below_100us,
       sum(case when latency_ns >= 100000 and latency_ns < 300000 then 1 else 0 end) as below_300us,
       sum(case when latency_ns >= 300000 and latency_ns < 1000000 then 1 else 0 end) as below_1ms,
       sum(case when latency_ns >= 1000000 and latency_ns < 3000000 then 1 else 0 end) as below_3ms,
       sum(case when latency_ns >= 3000000 and latency_ns < 10000000 then 1 else 0 end) as below_10ms,
       sum(case when latency_ns >= 10000000 and latency_ns < 30000000 then 1 else 0 end) as below_30ms,
       sum(case when latency_ns >= 30000000 and latency_ns < 100000000 then 1 else 0 end) as below_100ms,
       sum(case when latency_ns >= 100000000 and latency_ns < 1000000000 then 1 else 0 end) as below_1s,
       sum(case when latency_ns >= 1000000000 then 1 else 0 end) as from_1s_on
from io
where layer = 'disk'
group by substr(time, 1, 16)
order by minute;
