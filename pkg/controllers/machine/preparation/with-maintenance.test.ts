import { expect, test } from '@jest/globals';

import { KeptMachine } from '../../../../test/kept-machine.ts';
import { MAINTENANCE_ANNOTATION, PREPARE_DELETION_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';

type What = 'maintenance' | 'preparation';

const ORDERS: readonly (readonly [What, What])[] = [
  ['maintenance', 'preparation'],
  ['preparation', 'maintenance'],
];

const isCordoned = (kept: KeptMachine): boolean => kept.node.spec?.unschedulable === true;
/** What Machine and Node still carry of both. */
const left = (kept: KeptMachine): string[] =>
  [kept.machine, kept.node].flatMap(({ metadata }) =>
    Object.keys(metadata.annotations ?? {}).filter((key) => /maintenance|preparation|prepare|scale-down/.test(key)),
  );

// promise: deletions-aborted/maintenance-besides-node-given
test.each(
  ORDERS.flatMap((asked) =>
    ORDERS.flatMap((ended) =>
      (['Machine', 'Node'] as const).flatMap((on) => [false, true].map((restarts) => ({ asked, ended, on, restarts }))),
    ),
  ),
)(
  'a Node is given back exactly when the last of both ends: asked $asked (on the $on), ended $ended, restarts: $restarts',
  async ({ asked, ended, on, restarts }) => {
    const kept = new KeptMachine();
    const ask = (what: What, value: string | undefined): void => {
      if (what === 'preparation') kept.annotateMachine(PREPARE_DELETION_ANNOTATION, value);
      else if (on === 'Machine') kept.annotateMachine(MAINTENANCE_ANNOTATION, value);
      else kept.annotateNode(MAINTENANCE_ANNOTATION, value);
    };
    const seen: boolean[] = [];
    /** Passes until nothing moves; its pods never leave. */
    const rest = async (): Promise<void> => {
      if (restarts) kept.world.restart();
      for (let i = 0; i < 12; i++) {
        await kept.pass();
        seen.push(isCordoned(kept));
      }
    };

    ask(asked[0], 'true');
    await rest();
    expect(isCordoned(kept)).toBe(true);
    seen.length = 0;
    ask(asked[1], 'true');
    await rest();
    ask(ended[0], undefined);
    await rest();
    expect(seen).not.toContain(false);
    ask(ended[1], undefined);
    await rest();

    expect(isCordoned(kept)).toBe(false);
    expect(left(kept)).toEqual([]);
    expect(kept.world.deletedMachines).toEqual([]);
    expect(kept.phase).toBe('Running');
  },
);
