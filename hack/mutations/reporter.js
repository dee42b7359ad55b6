/**
 * Jest reporter: a line of JSON for each test file that begins, and one for each that has ended, with the project that it ran in.
 */
export default class LineReporter {
  onTestFileStart(test) {
    write({ project: projectOf(test), file: test.path });
  }

  onTestFileResult(test, { failureMessage, numPassingTests, testExecError, testResults }) {
    const failed = testResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName);
    const isBroken = failed.length === 0 && (testExecError !== undefined || failureMessage !== null);
    const error = isBroken ? String(failureMessage ?? testExecError?.message).slice(0, 400) : undefined;
    write({ project: projectOf(test), file: test.path, result: { passed: numPassingTests, failed, error } });
  }
}

function projectOf(test) {
  return test.context.config.displayName.name;
}

function write(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
