import type { Operator } from '../operator/operator.ts';
import type { World } from '../operator/world.ts';
import type { Controller } from '../work/reconcile/controller.ts';
import type { ReadAnnounced } from './announced-template.ts';
import type { Draining } from './draining.ts';
import type { PodRules } from './machine-facts/pod-rules.ts';

/** An API that is served beside ours, with its controllers. */
export interface ServedWorld extends World {
  /** What its provider says of machines of a class, for pools that grow from nothing. */
  readonly announced?: ReadAnnounced;
  /** What drains of all machines obey, where it is served; of one world at most. */
  readonly podRules?: (operator: Operator) => PodRules | undefined;
  /** Those that the flags ask for, in the order in which they hear of changes. */
  readonly controllers: (operator: Operator, draining: Draining) => readonly Controller[];
}
