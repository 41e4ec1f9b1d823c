//! Every case by criterion, ours and the alternatives in one group: `cargo bench -p
//! midturn-core --bench engine`. The figures are processor time, not wall time.

mod common;

use std::time::Duration;

use common::Row;
use criterion::{BenchmarkId, Criterion, Throughput};

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1_500))
        .configure_from_args();
    for row in common::ROWS {
        group(&mut criterion, row());
    }
    criterion.final_summary();
}

fn group(criterion: &mut Criterion, row: Row) {
    let mut group = criterion.benchmark_group(row.name);
    group.throughput(Throughput::Elements(1));
    for mut case in row.cases {
        group.bench_function(BenchmarkId::from_parameter(case.name), |b| b.iter_custom(|n| case.run(n)));
    }
    group.finish();
}
