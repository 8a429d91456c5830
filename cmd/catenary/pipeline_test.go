package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDetectPipeline(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		env  map[string]string
		want pipeline
	}{
		{name: "outside of a pipeline", env: map[string]string{"HOME": "/somewhere"}},
		{
			name: "GitHub, a push",
			env: map[string]string{
				"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/shop", "GITHUB_SHA": "c0ffee", "GITHUB_REF_NAME": "main", "GITHUB_REF_TYPE": "branch",
				"GITHUB_RUN_ID": "123", "GITHUB_RUN_ATTEMPT": "2", "GITHUB_ACTOR": "ann", "RUNNER_NAME": "runner 7",
			},
			want: pipeline{
				system: "GitHub Actions", repository: "acme/shop", commit: "c0ffee", branch: "main", ref: "main", run: "github/acme/shop/123.2",
				runner: "runner 7", person: "ann",
			},
		},
		{
			name: "GitHub, a pull request stands on its own branch",
			env: map[string]string{
				"GITHUB_REPOSITORY": "acme/shop", "GITHUB_SHA": "c0ffee", "GITHUB_REF_NAME": "12/merge", "GITHUB_HEAD_REF": "fix", "GITHUB_RUN_ID": "123",
			},
			want: pipeline{
				system: "GitHub Actions", repository: "acme/shop", commit: "c0ffee", branch: "fix", ref: "12/merge", run: "github/acme/shop/123.1",
				runner: "github-actions",
			},
		},
		{
			name: "GitHub, a tag is no branch",
			env:  map[string]string{"GITHUB_REPOSITORY": "acme/shop", "GITHUB_REF_NAME": "v1.20", "GITHUB_REF_TYPE": "tag"},
			want: pipeline{system: "GitHub Actions", repository: "acme/shop", ref: "v1.20", runner: "github-actions"},
		},
		{
			name: "GitLab, a push",
			env: map[string]string{
				"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/tools/shop", "CI_COMMIT_SHA": "c0ffee", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_REF_NAME": "main",
				"CI_PIPELINE_ID": "9", "CI_JOB_ID": "77", "GITLAB_USER_LOGIN": "ann", "CI_RUNNER_DESCRIPTION": "big one", "CI_COMMIT_AUTHOR": "Ben Example <ben@example.org>",
			},
			want: pipeline{
				system: "GitLab CI", repository: "acme/tools/shop", commit: "c0ffee", branch: "main", ref: "main", run: "gitlab/acme/tools/shop/77",
				runner: "big one", person: "ann", author: "Ben Example",
			},
		},
		{
			name: "GitLab, a merge request, and an older runner without job ids",
			env: map[string]string{
				"CI_PROJECT_PATH": "acme/shop", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "fix", "CI_COMMIT_REF_NAME": "fix", "CI_PIPELINE_ID": "9",
			},
			want: pipeline{system: "GitLab CI", repository: "acme/shop", branch: "fix", ref: "fix", run: "gitlab/acme/shop/9", runner: "gitlab-ci"},
		},
		{
			name: "Jenkins",
			env: map[string]string{
				"JENKINS_URL": "https://ci.example.org/", "BUILD_TAG": "jenkins-shop-12", "GIT_URL": "https://bot:secret@git.example.org/acme/shop.git", "GIT_COMMIT": "c0ffee",
				"GIT_BRANCH": "origin/main", "NODE_NAME": "builder-3", "GIT_AUTHOR_NAME": "Ben Example", "BUILD_USER_ID": "ann",
			},
			want: pipeline{
				system: "Jenkins", repository: "acme/shop", commit: "c0ffee", branch: "main", ref: "main", run: "jenkins/jenkins-shop-12",
				runner: "builder-3", person: "ann", author: "Ben Example",
			},
		},
		{
			name: "Jenkins over ssh",
			env:  map[string]string{"BUILD_TAG": "jenkins-shop-12", "GIT_URL": "git@git.example.org:acme/shop.git"},
			want: pipeline{system: "Jenkins", repository: "acme/shop", run: "jenkins/jenkins-shop-12", runner: "jenkins"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := detectPipeline(func(name string) string { return c.env[name] })
			if diff := cmp.Diff(c.want, found, cmp.AllowUnexported(pipeline{})); diff != "" {
				t.Errorf("pipeline (-want +found):\n%s", diff)
			}
		})
	}
}
