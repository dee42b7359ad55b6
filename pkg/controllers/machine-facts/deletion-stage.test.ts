import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { machine } from '../../../test/builders.ts';
import { DELETION_STAGES, deletionStageOf, describeStage, hasReached, textOfStage } from './deletion-stage.ts';

function terminating(description: string): ReturnType<typeof machine> {
  return machine((m) => {
    m.status.currentStatus.phase = 'Terminating';
    m.status.lastOperation = { type: 'Delete', state: 'Processing', description };
  });
}

describe('the stage of a deletion', () => {
  // Texts as the original writes them.
  test.each([
    { description: 'Set machine status to termination. Now, getting VM Status', stage: 'vm-status' },
    { description: 'Initiate node drain', stage: 'drain' },
    { description: 'VM was not found at provider. Moving forward to node drain. Initiate node drain', stage: 'drain' },
    { description: 'Drain failed due to - timeout. Will retry in next sync. Initiate node drain', stage: 'drain' },
    { description: 'Force Drain successful. Delete Volume Attachments', stage: 'detach-volumes' },
    { description: 'Drain successful. Initiate VM deletion', stage: 'delete-vm' },
    { description: 'VM deletion was successful. Initiate node object deletion', stage: 'delete-node' },
    { description: 'VM deletion was successful. Remove node finalizers', stage: 'delete-node' }, // v0.61
    {
      description: 'Removal of finalizers from Node Object "n" is successful. Initiate node object deletion', // v0.61
      stage: 'delete-node',
    },
    { description: 'Initiate machine object finalizer removal', stage: 'release-finalizer' },
    {
      description: 'Failed: stuck at Initiate node drain. Will retry in next sync. Initiate VM deletion',
      stage: 'delete-vm',
    },
    { description: 'Failed after Initiate node object deletion. Initiate VM deletion', stage: 'delete-vm' },
    { description: 'Deleting machine from cloud provider', stage: undefined },
    { description: '', stage: undefined },
  ])('"$description" is $stage', ({ description, stage }) => {
    expect(deletionStageOf(terminating(description))).toBe(stage);
  });

  test('is not begun in another phase, whatever the description says', () => {
    const running = machine((m) => {
      m.status.lastOperation.description = 'Initiate VM deletion';
    });

    expect(deletionStageOf(running)).toBeUndefined();
  });

  test.each(['Initiate machine object finalizer removal', 'Remove node finalizers'])(
    'is not led astray by "%s" inside an error text, nor is the original',
    (marker) => {
      const description = describeStage('drain', `provider said: ${marker}`);

      expect(deletionStageOf(terminating(description))).toBe('drain');
      expect(description).not.toContain(marker);
    },
  );

  test('survives any free text', () => {
    const text = fc.oneof(fc.string(), fc.constantFrom(...DELETION_STAGES.map((stage) => describeStage(stage))));
    fc.assert(
      fc.property(fc.constantFrom(...DELETION_STAGES), fc.array(text), (stage, texts) => {
        const description = describeStage(stage, texts.join(' '));
        expect(deletionStageOf(terminating(description))).toBe(stage);
      }),
    );
  });

  test('gives back its free text', () => {
    expect(textOfStage(describeStage('drain', 'Waiting for 1 pod.'))).toBe('Waiting for 1 pod.');
    expect(textOfStage(describeStage('drain'))).toBe('');
  });

  test('is reached when it is the present one or lies behind', () => {
    expect(hasReached('drain', 'drain')).toBe(true);
    expect(hasReached('delete-vm', 'drain')).toBe(true);
    expect(hasReached('vm-status', 'drain')).toBe(false);
    expect(hasReached(undefined, 'vm-status')).toBe(false);
  });
});
