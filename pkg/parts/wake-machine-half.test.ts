import { expect, test } from '@jest/globals';

import type { MachineActivities } from '../controllers/machine/calls/results.ts';
import type { KubeObject } from '../apis/meta.ts';
import type { ChangeHandler, Informer } from '../cache/lister.ts';
import { type IndexFunctions, Store } from '../cache/store.ts';
import type { ControllerName } from '../config/config.ts';
import type { MachineController } from '../controllers/machine/controller.ts';
import { CLASS_INDEX, classIndex } from '../indexes/class-index.ts';
import { MACHINE_INDEXES } from '../indexes/machine-indexes.ts';
import { SECRET_INDEX, secretIndex } from '../indexes/secret-references.ts';
import type { Queue } from '../workqueue/queue.ts';
import { machine, machineClass, secret } from '../../test/builders.ts';
import { wakeMachineHalf } from './wake-machine-half.ts';

/** A cache that holds one object, and can say that it has changed. */
class Held<T extends KubeObject> extends Store<T> {
  readonly hasSynced = true;
  readonly #handlers: ChangeHandler<T>[] = [];
  readonly #object: T;

  constructor(object: T, indexes: IndexFunctions<T>) {
    super(indexes);
    this.#object = object;
    this.put(object);
  }

  onChange(handler: ChangeHandler<T>): void {
    this.#handlers.push(handler);
  }

  appear(): void {
    for (const handler of this.#handlers) handler(undefined, this.#object);
  }

  /** What it lacks of an informer nobody asks for here. */
  get informer(): Informer<T> {
    return this as unknown as Informer<T>;
  }
}

/** The queues that get keys when a class appears, and when its Secret does. */
function wokenWith(...controllers: ControllerName[]): { byClass: string[]; bySecret: string[] } {
  let woken: string[] = [];
  const queue = (name: string): Queue => ({ add: () => void woken.push(name), addAfter: () => undefined });
  const machines = new Held(machine(), { ...MACHINE_INDEXES, [CLASS_INDEX]: classIndex });
  const classes = new Held(machineClass(), { [SECRET_INDEX]: secretIndex });
  const secrets = new Held<KubeObject>(secret(), {});
  wakeMachineHalf({
    controllers: new Set(controllers),
    machines: machines.informer,
    classes: classes.informer,
    secrets: secrets.informer,
    nodes: [],
    machineQueue: queue('machine'),
    classQueue: queue('class'),
    secretQueue: queue('secret'),
    activities: {} as MachineActivities,
    machineController: {} as MachineController,
  });
  const wokenBy = (appear: () => void): string[] => {
    woken = [];
    appear();
    return [...new Set(woken)].toSorted();
  };
  return { byClass: wokenBy(() => classes.appear()), bySecret: wokenBy(() => secrets.appear()) };
}

test('machines hear of their class and its Secret although the controllers of those run elsewhere', () => {
  expect(wokenWith('machine')).toEqual({ byClass: ['machine'], bySecret: ['machine'] });
});

test('a class and a Secret wake no machine where the machine controller does not run', () => {
  expect(wokenWith('machine-class', 'secret')).toEqual({ byClass: ['class', 'secret'], bySecret: ['secret'] });
});

test('all controllers together hear of everything', () => {
  const woken = wokenWith('machine', 'machine-class', 'secret');
  expect(woken).toEqual({ byClass: ['class', 'machine', 'secret'], bySecret: ['machine', 'secret'] });
});
