import type { Registry } from 'prom-client';

import { declaring } from '../../base/metrics/declaring.ts';
import type { ZoneState } from '../machine-facts/zones.ts';

export interface ReplacementSource {
  /** Why each unhealthy machine that is past its timeout waits: one reason a machine. */
  held(): readonly string[];
  zones(): readonly Pick<ZoneState, 'zone' | 'isStopped'>[];
}

/** Declares in `registry` what holds back the replacement of unhealthy machines. `reasons` are all that there are. */
export function replacementMetrics(registry: Registry, source: ReplacementSource, reasons: readonly string[]): void {
  const { series } = declaring(registry);
  series(
    'machinist_replacements_held',
    'Unhealthy machines past their health timeout that are not replaced, by reason: target, zone, stopped, pace, limit, grace.',
    ['reason'],
    () => {
      const held = source.held();
      return reasons.map((reason) => [{ reason }, held.filter((one) => one === reason).length]);
    },
  );
  series(
    'machinist_zone_stopped',
    'Whether machines of a zone are not replaced because too many of them became unhealthy at once (1) or not (0).',
    ['cluster', 'provider', 'zone'],
    () =>
      source
        .zones()
        .map(({ zone: { cluster, provider, name }, isStopped }) => [
          { cluster, provider, zone: name },
          isStopped ? 1 : 0,
        ]),
  );
}
