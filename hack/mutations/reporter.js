/** Jest reporter: one line of JSON for each test file that has ended, with the project that it ran in. */
export default class LineReporter {
  onTestResult(test, { failureMessage, numPassingTests, testExecError, testResults }) {
    const failed = testResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
    const isBroken = failed.length === 0 && (testExecError !== undefined || failureMessage !== null);
    const line = {
      project: test.context.config.displayName.name,
      file: test.path,
      passed: numPassingTests,
      failed,
      error: isBroken ? String(failureMessage ?? testExecError?.message).slice(0, 400) : undefined,
    };
    process.stdout.write(`${JSON.stringify(line)}\n`);
  }
}
