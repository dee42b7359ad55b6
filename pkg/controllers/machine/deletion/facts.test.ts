import { expect, test } from '@jest/globals';

import { machine } from '../../../../test/builders.ts';
import { describeStage, type DeletionStage } from '../../machine-facts/deletion-stage.ts';
import { explain } from '../explain/explain.ts';

type Change = (m: ReturnType<typeof machine>) => void;

const DONE = 'Machinist has completed the deletion; finalizer foreign/one keeps the object.';
const at =
  (stage: DeletionStage): Change =>
  (m) => {
    m.status.currentStatus.phase = 'Terminating';
    m.status.lastOperation = { type: 'Delete', state: 'Processing', description: describeStage(stage) };
  };

test.each([
  { what: 'deleted in order', change: at('release-finalizer'), message: DONE, after: 'The Machine is removed.' },
  { what: 'whose VM was deleted', change: at('delete-node'), message: DONE, after: 'The Machine is removed.' },
  {
    what: 'that never asked for a VM',
    change: (m) => {
      at('drain')(m);
      m.spec.providerID = '';
      m.status.lastOperation.errorCode = 'NeverAsked';
    },
    message: DONE,
    after: 'The Machine is removed.',
  },
  {
    what: 'whose VM runs',
    change: at('drain'),
    message:
      'The finalizer of Machinist was removed before VM sim:///m-1 was deleted; finalizer foreign/one keeps the object.',
    after: 'The Machine is removed; then its VM is deleted as an orphan.',
  },
  {
    what: 'whose deletion nobody has begun',
    change: () => undefined,
    message:
      'The finalizer of Machinist was removed before VM sim:///m-1 was deleted; finalizer foreign/one keeps the object.',
    after: 'The Machine is removed; then its VM is deleted as an orphan.',
  },
] as { what: string; change: Change; message: string; after: string }[])(
  'a Machine $what that another finalizer keeps says whether its VM is left',
  ({ change, message, after }) => {
    const kept = machine((m) => {
      m.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      m.metadata.finalizers = ['foreign/one'];
      change(m);
    });

    expect(explain(kept, 0)).toMatchObject({ reason: 'KeptByOthers', message, nextStep: after });
  },
);
