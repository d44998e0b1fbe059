-- Noisy neighbours: beside which client do the I/Os of the others take longer? A client is busy in the seconds in
-- which it moved more than half of a device's bytes. `times` compares the others' mean latency in those seconds with
-- that in all other seconds; the first line is the client that cost the others the most time. (A device with one
-- client has no line.)
with per_client as (
    select host, device, at_ns - at_ns % 1000000000 as second_ns, who,
           count(*) as ios, sum(bytes) as moved, sum(latency_ns) as spent_ns
    from io
    where layer = 'disk'
    group by host, device, at_ns - at_ns % 1000000000, who
),
beside as (
    select host, device, who, ios, spent_ns, moved,
           sum(ios) over (partition by host, device, second_ns) - ios as other_ios,
           sum(spent_ns) over (partition by host, device, second_ns) - spent_ns as other_ns,
           sum(moved) over (partition by host, device, second_ns) - moved as other_moved
    from per_client
),
busy as (
    select host, device, who, sum(moved) as all_moved,
           sum(ios) as all_ios, sum(spent_ns) as all_ns,
           sum(case when moved > other_moved then other_ios else 0 end) as busy_ios,
           sum(case when moved > other_moved then other_ns else 0 end) as busy_ns
    from beside
    group by host, device, who
),
quiet as (
    select host, device, who, all_moved, busy_ios, busy_ns,
           sum(all_ios) over (partition by host, device) - all_ios - busy_ios as quiet_ios,
           sum(all_ns) over (partition by host, device) - all_ns - busy_ns as quiet_ns
    from busy
)
select host, device, who as neighbour, all_moved as its_bytes,
       busy_ios as others_beside_it, floor(busy_ns * 1e0 / busy_ios) as their_mean_ns,
       quiet_ios as others_else, floor(quiet_ns * 1e0 / quiet_ios) as mean_else_ns,
       floor(10e0 * (busy_ns * 1e0 / busy_ios) / (quiet_ns * 1e0 / quiet_ios)) / 10 as times
from quiet
where busy_ios > 0 and quiet_ios > 0
order by busy_ns * 1e0 - (quiet_ns * 1e0 / quiet_ios) * busy_ios desc, host, device, neighbour;
