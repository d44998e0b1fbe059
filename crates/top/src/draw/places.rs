//! The layout of the screen: the place of each panel.

use ratatui::layout::Rect;

/// How many lines each panel wants.
pub(super) struct Wants {
    pub(super) header: u16,
    pub(super) footer: u16,
    pub(super) disks: u16,
    pub(super) pools: u16,
    pub(super) txgs: u16,
    pub(super) rules: u16,
    pub(super) clients: u16,
}

/// The place of each panel. Panels without room have no height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) header: Rect,
    pub(super) disks: Rect,
    pub(super) pools: Rect,
    pub(super) txgs: Rect,
    pub(super) rules: Rect,
    pub(super) clients: Rect,
    pub(super) charts: Rect,
    pub(super) footer: Rect,
}

impl Places {
    /// From the top: header, disks, pools and their transaction groups, rules and clients (side by
    /// side on a wide screen), charts, footer. Each table gets at least a row. The charts get the
    /// rest.
    pub(super) fn new(area: Rect, wants: &Wants) -> Places {
        let wide = area.width >= WIDE;
        let mut column = Stack { area, y: area.y };
        let footer = wants.footer.min(area.height / 3);
        let header = wants.header.min(area.height / 6).max(1);
        let room = area.height - header - footer;
        let charts = (room / 3).max(CHARTS_MIN);
        // The height for tables. On a low screen, tables get the whole height, and there are no
        // charts.
        let tables_min = TABLES_MIN + wants.pools.min(TABLE_MIN);
        let tables = if room >= charts + tables_min {
            room - charts
        } else {
            room
        };
        let (pools_least, rules_least) = (wants.pools.min(TABLE_MIN), wants.rules.min(TABLE_MIN));
        let disks_most = (tables / 2).min(tables.saturating_sub(pools_least + rules_least));
        let disks = wants.disks.min(disks_most.max(TABLE_MIN));
        let below = tables - disks;
        let for_pools = below.saturating_sub(rules_least);
        let pools = at_least(TABLE_MIN, wants.pools.min(for_pools));
        let txgs = at_least(TABLE_MIN, wants.txgs.min(for_pools - pools));
        let below = below - pools - txgs;
        let (rules, clients) = if wide {
            (wants.rules.min(below), wants.clients.min(below))
        } else {
            let clients = wants.clients.min((below / 3).max(TABLE_MIN));
            let clients = if below >= clients + TABLE_MIN {
                clients
            } else {
                0
            };
            (wants.rules.min(below - clients), clients)
        };
        let header = column.take(header);
        let disks = column.take(disks);
        let pools = column.take(pools);
        let txgs = column.take(txgs);
        let (rules, clients) = if wide {
            beside(column.take(rules.max(clients)))
        } else {
            (column.take(rules), column.take(clients))
        };
        let left = area.bottom() - column.y - footer;
        Places {
            header,
            disks,
            pools,
            txgs,
            rules,
            clients,
            charts: column.take(left),
            footer: column.take(footer),
        }
    }
}

/// The height, or 0 if it is below the smallest useful height.
fn at_least(least: u16, height: u16) -> u16 {
    if height < least { 0 } else { height }
}

/// Splits an area for rules and clients. Rules get more width, because their lines are longer.
fn beside(area: Rect) -> (Rect, Rect) {
    let left = area.width * 5 / 8;
    let (rules, clients) = (left, area.width - left - 2);
    (
        Rect {
            width: rules,
            ..area
        },
        Rect {
            x: area.x + left + 2,
            width: clients,
            ..area
        },
    )
}

/// Allocates rows from the top.
struct Stack {
    area: Rect,
    y: u16,
}

impl Stack {
    fn take(&mut self, height: u16) -> Rect {
        let taken = Rect {
            y: self.y,
            height,
            ..self.area
        };
        self.y += height;
        taken
    }
}

/// From this width on, rules and clients are side by side.
const WIDE: u16 = 150;
/// The minimum height of a table: a title, a head and a row.
const TABLE_MIN: u16 = 3;
/// The minimum height of three tables.
const TABLES_MIN: u16 = 3 * TABLE_MIN;
/// The minimum height of charts: a title, two charts, and a heat map of three rows.
const CHARTS_MIN: u16 = 6;
