import { expect, test } from '@jest/globals';

import type { KubeObject } from '../../apis/meta.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { WholeViews } from './whole-views.ts';

function object(name: string): KubeObject {
  return { metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '' } };
}

test('each reader sees all and hears of it, until it is forgotten, whatever others throw', () => {
  const informer = new MemoryInformer<KubeObject>([object('x')]);
  const failed: unknown[] = [];
  const views = new WholeViews(informer, (err) => void failed.push(err));
  const heard: string[] = [];
  const err = new Error('bug');
  views.of('broken').onChange(() => {
    throw err;
  });
  for (const reader of ['a', 'b']) {
    views.of(reader).onChange((old, current) => void heard.push(`${reader} ${(current ?? old)?.metadata.name}`));
  }

  views.of('a').onDelivered((old, current) => void heard.push(`a delivered ${(current ?? old)?.metadata.name}`));

  informer.put(object('y'));
  views.forget('a');
  informer.remove('x');

  expect(heard).toEqual(['a x', 'b x', 'a delivered y', 'a y', 'b y', 'b x']);
  expect(
    views
      .of('c')
      .list()
      .map(({ metadata }) => metadata.name),
  ).toEqual(['y']);
  expect(views.of('c').get('y')).toBeDefined();
  expect(failed).toEqual([err, err, err]);
});
