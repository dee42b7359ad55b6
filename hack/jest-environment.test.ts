import { expect, test } from '@jest/globals';

/** What jest takes is JavaScript, without types. */
const MODULE: string = './jest-environment.js';

test('the global object of tests is that of its context, with nothing between', async () => {
  const { default: PlainEnvironment } = (await import(MODULE)) as {
    default: new (config: object, context: object) => { context: object; global: object; teardown(): Promise<void> };
  };
  const environment = new PlainEnvironment(
    { projectConfig: { testEnvironmentOptions: {}, globals: {} } },
    { testPath: import.meta.filename },
  );

  expect(environment.context).toBe(environment.global);
  await environment.teardown();
});
