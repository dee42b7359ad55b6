import type { MachineActivities } from '../controllers/machine/calls/results.ts';
import type { Machine } from '../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../apis/machine/v1alpha1/machine-class.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { Node } from '../apis/wire.ts';
import type { Informer } from '../cache/lister.ts';
import type { ControllerName } from '../config/config.ts';
import type { MachineController } from '../controllers/machine/controller.ts';
import { wakeMachines } from '../controllers/machine/wake.ts';
import { wakeMachineClasses } from '../controllers/machine-class/wake.ts';
import { wakeSecrets } from '../controllers/secret/wake.ts';
import type { Queue } from '../workqueue/queue.ts';

/** What the machine half listens to, and whom it wakes. */
export interface MachineHalfWakes {
  /** Those that run in this process. */
  readonly controllers: ReadonlySet<ControllerName>;
  readonly machines: Informer<Machine>;
  readonly classes: Informer<MachineClass>;
  readonly secrets: Informer<KubeObject>;
  readonly nodes: readonly Informer<Node>[];
  readonly machineQueue: Queue;
  readonly classQueue: Queue;
  readonly secretQueue: Queue;
  readonly activities: MachineActivities;
  readonly machineController: MachineController;
}

/** The queue of a controller that does not run here. */
const nobody: Queue = { add: () => undefined, addAfter: () => undefined };

/**
 * Fills the queues of the controllers that run, from now on. Machines hear of their class and its Secrets also when the
 * controllers of those run elsewhere, and a controller that runs elsewhere never runs here.
 */
export function wakeMachineHalf(parts: MachineHalfWakes): void {
  const { controllers, machines, classes, secrets, nodes, activities, machineController } = parts;
  const pick = (name: ControllerName, queue: Queue): Queue => (controllers.has(name) ? queue : nobody);
  const machineQueue = pick('machine', parts.machineQueue);
  wakeMachineClasses({ classes, machines, queue: pick('machine-class', parts.classQueue), machineQueue });
  wakeSecrets({ secrets, classes, machines, queue: pick('secret', parts.secretQueue), machineQueue });
  if (controllers.has('machine')) {
    wakeMachines({ machines, nodes, queue: machineQueue, activities, controller: machineController });
  }
}
