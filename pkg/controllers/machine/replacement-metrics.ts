import { Gauge, type Registry } from 'prom-client';

interface ZoneLabels {
  readonly cluster: string;
  readonly provider: string;
  readonly name: string;
}

export interface ReplacementSource {
  /** Why each unhealthy machine that is past its timeout waits: one reason a machine. */
  held(): readonly string[];
  /** The zones of machines, and whether replacement is stopped there. */
  zones(): readonly { readonly zone: ZoneLabels; readonly isStopped: boolean }[];
}

/** Declares in `registry` what holds back the replacement of unhealthy machines. `reasons` are all that there are. */
export function replacementMetrics(registry: Registry, source: ReplacementSource, reasons: readonly string[]): void {
  const registers = [registry];
  void new Gauge({
    name: 'machinist_replacements_held',
    help: 'Unhealthy machines past their health timeout that are not replaced, by reason: zone, stopped, pace, limit, grace.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      const held = source.held();
      for (const reason of reasons) this.set({ reason }, held.filter((one) => one === reason).length);
    },
  });
  void new Gauge({
    name: 'machinist_zone_stopped',
    help: 'Whether machines of a zone are not replaced because too many of them became unhealthy at once (1) or not (0).',
    labelNames: ['cluster', 'provider', 'zone'],
    registers,
    collect() {
      this.reset();
      for (const { zone, isStopped } of source.zones()) {
        const { cluster, provider, name } = zone;
        this.set({ cluster, provider, zone: name }, isStopped ? 1 : 0);
      }
    },
  });
}
